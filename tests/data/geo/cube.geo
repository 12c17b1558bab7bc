SetFactory("OpenCASCADE");
Box(1)={0,0,0,1,1,1};
Physical Surface("bottom")={5}; Physical Surface("rest")={1,2,3,4,6}; Physical Volume("cube")={1};
Mesh.MeshSizeMax=0.45; Mesh.MeshSizeMin=0.45;
