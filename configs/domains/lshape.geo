// The mesh of l_mesh.toml: gmsh -2 -format msh41 lshape.geo
SetFactory("Built-in");
h = 0.1;
Point(1) = {-1,-1,0,h}; Point(2) = {0,-1,0,h}; Point(3)={0,0,0,h}; Point(4)={1,0,0,h}; Point(5)={1,1,0,h}; Point(6)={-1,1,0,h};
Line(1)={1,2}; Line(2)={2,3}; Line(3)={3,4}; Line(4)={4,5}; Line(5)={5,6}; Line(6)={6,1};
Curve Loop(1)={1,2,3,4,5,6}; Plane Surface(1)={1};
Physical Curve("corner")={2,3}; Physical Curve("outer")={1,4,5,6}; Physical Surface("domain")={1};
